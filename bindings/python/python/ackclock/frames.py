"""Pages of the engine inside notebooks."""

from __future__ import annotations

import html

#: Of a page its plots and heat maps: a table stands above the frame.
PLOTS = "<style>header, main > :not(.plots):not(.grid) { display: none }</style>\n</head>"


def printed(text: str) -> str:
    """What is printed, its columns kept: notebooks would wrap long lines."""
    return f'<pre style="white-space: pre; overflow-x: auto">{html.escape(text)}</pre>'


def framed(page: str, height_px: int = 640) -> str:
    """The plots of a page in a frame of its own: its style and its program touch nothing else."""
    plots = page.replace("</head>", PLOTS, 1)
    return (
        f'<iframe srcdoc="{html.escape(plots)}" sandbox="allow-scripts" loading="lazy" '
        f'title="Ackclock" style="width:100%;height:{height_px}px;border:1px solid #8884;'
        'border-radius:6px"></iframe>'
    )
