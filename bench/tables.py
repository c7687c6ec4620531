"""Tables of results, for a terminal and for Markdown, and how numbers look in them."""


def number(value):
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 1 else f"{value:.2g}"


def ratio(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def spread(values):
    """A spread of ratios: its median, and from where to where it goes."""
    return f"{ratio(values['median'])} ({ratio(values['min'])}–{ratio(values['max'])})"


def as_text(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if i == 0 else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def as_markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])
