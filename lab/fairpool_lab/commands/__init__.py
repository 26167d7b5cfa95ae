"""The commands of `fairpool`, a module each."""
