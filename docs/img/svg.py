"""Pictures of the pages as SVG: readable at 400 pixels, on a light and on a dark page."""

import math
from contextlib import contextmanager
from html import escape

# 13 units are 11.8 pixels where the picture is 400 pixels wide.
WIDTH, FONT = 440, 13

FONTS = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif'
MONO = 'ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace'

# Of each colour: as text, and as a shape.
LIGHT = {"a": "#0969da", "b": "#1a7f37", "bad": "#cf222e", "warn": "#9a6700", "muted": ("#59636e", "#818b98")}
DARK = {"a": "#4493f8", "b": "#3fb950", "bad": "#f85149", "warn": "#d29922", "muted": ("#9198a1", "#6e7681")}


def rules(text, on, colours):
    """The text, the text on bars, and the colours."""
    lines = [f"text {{ fill: {text} }} text.on {{ fill: {on} }}"]
    for name, colour in colours.items():
        words, shape = (colour, colour) if isinstance(colour, str) else colour
        lines.append(f".{name} {{ fill: {shape}; stroke: {shape} }} text.{name} {{ fill: {words} }}")
    return "\n".join(lines)


STYLE = f"""
text {{ font: {FONT}px {FONTS} }}
text.mono {{ font-family: {MONO}; white-space: pre }}
{rules("#1f2328", "#fff", LIGHT)}
@media (prefers-color-scheme: dark) {{
{rules("#f0f6fc", "#0d1117", DARK)}
}}
text[class], .bar {{ stroke: none }}
polyline[class], rect.open, rect.frame {{ fill: none }}
rect.faint {{ fill-opacity: .15 }}
rect.open, rect.faint {{ stroke-dasharray: 4 3 }}
.line {{ stroke-width: 1.5 }}
.thin {{ stroke-dasharray: 2 3 }}
"""


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


def logarithmic(low, high, begin, end):
    """Gives the place of a value on an axis from `begin` to `end`."""
    return lambda value: begin + (end - begin) * math.log(value / low) / math.log(high / low)


class Picture:
    """Kinds are classes of the style: a colour, and how it is drawn."""

    def __init__(self, title, height, width=WIDTH):
        self.width, self.height = width, height
        self.parts = [f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>"]

    def text(self, x, y, words, kind="", anchor="start"):
        place = f'x="{number(x)}" y="{number(y)}"'
        # Some programs don't know the style `white-space`.
        spaces = ' xml:space="preserve"' if "mono" in kind else ""
        kind = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text {place}{kind}{spaces} text-anchor="{anchor}">{escape(words)}</text>')

    def box(self, x, y, width, height, kind):
        size = f'width="{number(width)}" height="{number(height)}"'
        self.parts.append(f'<rect x="{number(x)}" y="{number(y)}" {size} rx="3" class="{kind}"/>')

    def line(self, *points, kind="muted line"):
        path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" class="{kind}"/>')

    def arrow(self, start, end, kind):
        """Level, or upright."""
        (x, y), (from_x, from_y) = end, start
        dx, dy = (x > from_x) - (x < from_x), (y > from_y) - (y < from_y)
        back_x, back_y = x - 7 * dx, y - 7 * dy
        self.line(start, (back_x, back_y), kind=f"{kind} line")
        corners = [(x, y), (back_x - 4 * dy, back_y - 4 * dx), (back_x + 4 * dy, back_y + 4 * dx)]
        points = " ".join(f"{number(x)},{number(y)}" for x, y in corners)
        self.parts.append(f'<polygon points="{points}" class="{kind} bar"/>')

    def animate(self, frames, seconds=1):
        """Shows frames in turn; the first one where nothing moves."""
        share = 100 / frames
        moves = f"0%, {share:g}% {{ opacity: 1 }} {share + 0.01:g}%, 100% {{ opacity: 0 }}"
        rule = f"animation: turn {frames * seconds}s infinite"
        delays = "".join(f".f{number} {{ {rule} {number * seconds}s }}\n" for number in range(frames))
        still = ".f { opacity: 0 } .f0 { opacity: 1 }"
        motion = f"@media (prefers-reduced-motion: no-preference) {{\n{delays}}}"
        self.parts.append(f"<style>{still}\n@keyframes turn {{ {moves} }}\n{motion}</style>")

    @contextmanager
    def shown_in(self, frame):
        self.parts.append(f'<g class="f f{frame}">')
        yield
        self.parts.append("</g>")

    def cross(self, x, y, kind="bad"):
        for way in (-1, 1):
            self.line((x - 5, y - 5 * way), (x + 5, y + 5 * way), kind=f"{kind} line")

    def whole(self):
        size = f'viewBox="0 0 {self.width} {number(self.height)}"'
        # How large it is where nothing limits it.
        wide = 600
        high = number(wide * self.height / self.width)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} width="{wide}" height="{high}" role="img">'
        return "\n".join([head, *self.parts, "</svg>"]) + "\n"


def save_or_check(pictures, check):
    """Writes each file. With `check`, returns the paths whose text differs instead."""
    wrong = []
    for path, text in pictures.items():
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong.append(path)
    return wrong
