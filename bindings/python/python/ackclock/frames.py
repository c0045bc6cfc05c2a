"""Pages of the engine inside notebooks."""

from __future__ import annotations

import html


def framed(page: str, height_px: int = 640) -> str:
    """A page in a frame of its own: its style and its program touch nothing of the notebook."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" loading="lazy" '
        f'title="Ackclock" style="width:100%;height:{height_px}px;border:1px solid #8884;'
        'border-radius:6px"></iframe>'
    )
