"""Elements of the page: a tree, so that whatever a tenant is called is escaped, and never markup."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring


def element(tag: str, *children: Element | str | None, **attributes: str | float | None) -> Element:
    """An element; `_` in an attribute's name stands for `-`, and `class_` for class. What is None is left out."""
    made = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            made.set("class" if name == "class_" else name.replace("_", "-"), text)
    for child in children:
        if isinstance(child, str):
            _append_text(made, child)
        elif child is not None:
            made.append(child)
    return made


def document(root: Element) -> str:
    """The whole page."""
    return f"<!DOCTYPE html>\n{tostring(root, encoding='unicode', method='html')}\n"


def _append_text(parent: Element, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text
