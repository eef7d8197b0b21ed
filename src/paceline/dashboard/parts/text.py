"""Words on a page: any element that holds just text. Text is set as text, never as HTML, whoever wrote it."""

from nicegui.elements.mixins.text_element import TextElement


def text(tag: str, words: str, classes: str = "") -> TextElement:
    """`text("h2", "Queue")`; change it by `.text = …`."""
    made = TextElement(tag=tag, text=words)
    return made.classes(classes) if classes else made
