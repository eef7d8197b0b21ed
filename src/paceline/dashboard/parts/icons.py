"""The few icons, drawn for 20 × 20 in one stroke width. Always beside a word, so a screen reader is spared them."""

from nicegui import ui

_PATHS = {
    "fleet": "M3 5.5h14M3 10h14M3 14.5h14M6 3.5v4M13 8v4M8 12.5v4",
    "jobs": "M4 3.5h12v13H4zM7 7.5h6M7 10.5h6M7 13.5h3",
    "compose": "M3.5 16.5h4l9-9-4-4-9 9zM10.5 5.5l4 4",
    "queues": "M3.5 5h13M3.5 10h9M3.5 15h5M14.5 12.5v5M12 15h5",
    "inventory": "M3.5 4.5h13v4h-13zM3.5 11.5h13v4h-13zM6.5 6.5h.01M6.5 13.5h.01",
    "suppressions": "M10 3.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13zM5.5 5.5l9 9",
    "settings": "M3.5 6h7M14.5 6h2M3.5 14h2M9.5 14h7M12.5 4v4M7.5 12v4",
    "theme": "M10 3.5a6.5 6.5 0 1 0 0 13zM10 3.5a6.5 6.5 0 1 1 0 13",
    "logout": "M8 3.5H4v13h4M9 10h8M14 7l3 3l-3 3",
    "pause": "M7 4.5v11M13 4.5v11",
    "resume": "M6.5 4.5v11l9-5.5z",
}


def icon(name: str) -> ui.html:
    drawing = (
        '<svg class="icon" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false" fill="none" '
        'stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">'
        f'<path d="{_PATHS[name]}"/></svg>'
    )
    # Our own constant, nothing of anybody else's.
    return ui.html(drawing, sanitize=False, tag="span").classes("icon-box")
