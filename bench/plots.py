#!/usr/bin/env python3
"""Pictures of how cost grows: SVG by hand, so that they need no library and a diff shows what changed.

    bench/plots.py      # draws them again from the tables of docs/benchmarks.md

One line for each number of connections, keys from left to right on a logarithmic axis. The colours can be told apart
by those who do not see red and green, and both by day and in a dark theme.
"""

import html
import math
import os
import re
import sys

import systems

PAGE = os.path.join(systems.ROOT, "docs", "benchmarks.md")
IMAGES = os.path.join(systems.ROOT, "docs", "images")
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 70, 130, 40, 50


def value_of(cell):
    return float(cell.replace(",", ""))


def nice_ceiling(value):
    """The next of 1, 2, 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def chart(rows, title, unit):
    """rows as in the page: a heading of key counts, then a row for each number of connections."""
    keys = [value_of(cell) for cell in rows[0][1:]]
    lines = [(row[0].split(" (")[0], [value_of(cell) for cell in row[1:]]) for row in rows[1:]]
    top = nice_ceiling(max(max(values) for _, values in lines))
    low, high = math.log10(min(keys)), math.log10(max(keys))

    def x(count):
        return LEFT + (WIDTH - LEFT - RIGHT) * ((math.log10(count) - low) / (high - low) if high > low else 0.5)

    def y(value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
             f'aria-label="{html.escape(title)}" font-family="system-ui, sans-serif" font-size="12">',
             "<style>text{fill:#333}.grid{stroke:#bbb;stroke-width:.5}"
             "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#555}}</style>",
             f'<text x="{LEFT}" y="22" font-size="15">{html.escape(title)}</text>']
    for i in range(6):
        value = top * i / 5
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y(value):.1f}" x2="{WIDTH - RIGHT}" y2="{y(value):.1f}"/>'
                     f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:,.0f}</text>')
    for count in keys:
        parts.append(f'<text x="{x(count):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{count:,.0f}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 10}" text-anchor="middle">keys</text>'
                 f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">'
                 f"{html.escape(unit)}</text>")
    labels = spread_out([y(values[-1]) for _, values in lines], 15)
    for (name, values), label, colour in zip(lines, labels, COLOURS * len(lines)):
        points = " ".join(f"{x(count):.1f},{y(value):.1f}" for count, value in zip(keys, values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(count):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"><title>'
                  f"{html.escape(name)} connections, {count:,.0f} keys: {value:,.4g}</title></circle>"
                  for count, value in zip(keys, values)]
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{label + 4:.1f}" style="fill:{colour}">'
                     f"{html.escape(name)} connection{'' if name == '1' else 's'}</text>")
    return "\n".join([*parts, "</svg>", ""])


def spread_out(heights, least):
    """The same heights, moved apart so that no label covers another."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for before, after in zip(order, order[1:]):
        placed[after] = max(placed[after], placed[before] + least)
    over = max(placed) - (HEIGHT - BOTTOM) if placed else 0
    return [height - max(over, 0) for height in placed]


def charts(pairs, cpu):
    """Name -> picture."""
    return {"growth-pairs.svg": chart(pairs, "Lock and unlock: rate by keys and connections", "pairs a second"),
            "growth-cpu.svg": chart(cpu, "Lock and unlock: CPU by keys and connections", "CPU µs a pair")}


def write(pairs, cpu):
    os.makedirs(IMAGES, exist_ok=True)
    for name, picture in charts(pairs, cpu).items():
        with open(os.path.join(IMAGES, name), "w", encoding="utf-8") as file:
            file.write(picture)


def tables_of(page):
    """The grids between the markers of `growth`: the rates, then the CPU."""
    block = re.search(r"<!-- measured: growth -->(.*?)<!-- end -->", page, re.S)[1]
    found = []
    for text in re.findall(r"(?:^\|.*\n)+", block, re.M):
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()]
        found.append([rows[0], *rows[2:]])
    return found


def main():
    with open(PAGE, encoding="utf-8") as file:
        write(*tables_of(file.read()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
