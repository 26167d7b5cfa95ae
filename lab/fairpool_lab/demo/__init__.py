"""The demonstration: a real trace through the real gateway, once in arrival order and once fair, set side by side."""
