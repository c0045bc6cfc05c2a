"""Pages of the engine inside notebooks."""

from __future__ import annotations

import html

#: Shows only the plots and heat maps of a page: a table is above the frame.
PLOTS = "<style>header, main > :not(.plots):not(.grid) { display: none }</style>\n</head>"


#: Shows only the verdicts of a page.
CARDS = "<style>header, main > :not(.verdict):not(h2) { display: none }</style>\n</head>"


def printed(text: str) -> str:
    """Printed text with its columns preserved: notebooks would wrap long lines."""
    return f'<pre style="white-space: pre; overflow-x: auto">{html.escape(text)}</pre>'


def framed(page: str, height_px: int = 640, style: str = PLOTS) -> str:
    """Parts of a page in their own frame, isolated from the notebook's style and scripts."""
    plots = page.replace("</head>", style, 1)
    return (
        f'<iframe srcdoc="{html.escape(plots)}" sandbox="allow-scripts" loading="lazy" '
        f'title="Ackclock" style="width:100%;height:{height_px}px;border:1px solid #8884;'
        'border-radius:6px"></iframe>'
    )
