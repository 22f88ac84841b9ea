"""Boxes, arrows and texts as SVG, for the pictures that are drawn from the sources."""

from xml.sax.saxutils import escape

INK, PALE, LINE = "#222", "#f3f6fa", "#7a8ba0"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"  # Okabe and Ito 2008


def wrapped(words, width):
    """`words` in lines of at most `width` letters."""
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) + 1 > width and lines[-1]:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


class Picture:
    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" fill="{INK}">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="#fff"/>']
        self.text(20, 28, title, size=16, bold=True)

    def text(self, x, y, words, size=13, bold=False, colour=INK, middle=False):
        look = (' font-weight="bold"' if bold else "") + (' text-anchor="middle"' if middle else "")
        self.parts.append(f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{look}>{escape(words)}</text>')

    def box(self, x, y, width, height, fill=PALE, stroke=LINE):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}" '
                          f'stroke="{stroke}"/>')

    def arrow(self, *corners):
        path = "M" + "L".join(f"{x} {y}" for x, y in corners)
        self.parts.append(f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.5" marker-end="url(#tip)"/>')

    def lines(self, x, y, words, width, size=12, colour=INK):
        """Writes `words` in lines of at most `width` letters, and returns how many they are."""
        lines = wrapped(words, width)
        for number, line in enumerate(lines):
            self.text(x, y + number * (size + 4), line, size=size, colour=colour)
        return len(lines)

    def svg(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"
