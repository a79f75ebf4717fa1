"""A picture of the past: numbers as lines, states as bars, on one axis of time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from io import BytesIO
from math import floor, log10

from PIL import Image, ImageDraw, ImageFont

from sash.home.history import as_number, is_numeric, numbers
from sash.ports.home import NO_STATE, Point

WIDTH, LINES_HEIGHT, BAR_HEIGHT = 960, 360, 34
LEFT, RIGHT, TOP, BOTTOM, GAP = 64, 24, 52, 34, 14
COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#db2777", "#4d7c0f")
PAPER, INK, PALE, GRID, MISSING = "#ffffff", "#111827", "#6b7280", "#e5e7eb", "#f3d9d9"
OFF = frozenset({"off", "closed", "locked", "not_home", "idle", "standby", "clear", "disarmed", "docked"})
STEPS = (
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=3),
    timedelta(hours=6),
    timedelta(days=1),
)
MAX_TICKS = 10
# What is closer together, as a part of itself, is drawn as the same.
SMALLEST_SPAN = 1e-6


@dataclass(frozen=True, slots=True)
class Axis:
    """Where a time is on the picture."""

    start: datetime
    end: datetime

    def x(self, at: datetime) -> float:
        share = (at - self.start) / (self.end - self.start)
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(share, 0.0), 1.0)


def plot(
    histories: Mapping[str, Sequence[Point]],
    units: Mapping[str, str],
    start: datetime,
    end: datetime,
    zone: tzinfo | None = None,
) -> bytes:
    """Draw histories by name, and return them as a PNG."""
    lines = {name: points for name, points in histories.items() if is_numeric(points)}
    bars = {name: points for name, points in histories.items() if points and name not in lines}
    height = TOP + (LINES_HEIGHT + GAP if lines else 0) + len(bars) * (BAR_HEIGHT + GAP) + BOTTOM
    picture = Image.new("RGB", (WIDTH, height), PAPER)
    draw = ImageDraw.Draw(picture)
    axis = Axis(start, end)
    _draw_times(draw, axis, zone, height - BOTTOM)
    top = TOP
    if lines:
        _draw_lines(draw, axis, lines, units, top)
        top += LINES_HEIGHT + GAP
    for n, (name, points) in enumerate(bars.items(), len(lines)):
        _draw_bar(draw, axis, name, points, top, COLOURS[n % len(COLOURS)])
        top += BAR_HEIGHT + GAP
    _draw_names(draw, [*lines], units)
    data = BytesIO()
    picture.save(data, "PNG", optimize=True)
    return data.getvalue()


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _draw_times(draw: ImageDraw.ImageDraw, axis: Axis, zone: tzinfo | None, bottom: int) -> None:
    span = axis.end - axis.start
    step = next((step for step in STEPS if span / step <= MAX_TICKS), STEPS[-1])
    local = axis.start.astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight + step * (floor((local - midnight) / step) + 1)
    while at < axis.end:
        x = axis.x(at)
        draw.line((x, TOP, x, bottom), fill=GRID)
        text = (
            f"{at:%a %d %b}" if step >= timedelta(days=1) or (at.hour, at.minute) == (0, 0) else f"{at:%H:%M}"
        )
        draw.text((x, bottom + 6), text, fill=PALE, font=_font(13), anchor="ma")
        at += step


def _draw_lines(
    draw: ImageDraw.ImageDraw,
    axis: Axis,
    lines: Mapping[str, Sequence[Point]],
    units: Mapping[str, str],
    top: int,
) -> None:
    values = [value for points in lines.values() for value in numbers(points).values]
    low, high, step = _scale(min(values), max(values))
    bottom = top + LINES_HEIGHT

    def y(value: float) -> float:
        return bottom - (value - low) / (high - low) * LINES_HEIGHT

    tick = low
    while tick <= high + step / 2:
        draw.line((LEFT, y(tick), WIDTH - RIGHT, y(tick)), fill=GRID)
        draw.text((LEFT - 8, y(tick)), f"{tick:g}", fill=PALE, font=_font(13), anchor="rm")
        tick = round(tick + step, 10)
    for n, points in enumerate(lines.values()):
        stretch: list[tuple[float, float]] = []
        for point in points:
            value = as_number(point.state)
            if value is None:
                stretch += [(axis.x(point.at), y) for _, y in stretch[-1:]]
                _draw_stretch(draw, stretch, n)
                stretch = []
            else:
                stretch.append((axis.x(point.at), y(value)))
        if stretch:
            stretch.append((axis.x(axis.end), stretch[-1][1]))
        _draw_stretch(draw, stretch, n)


def _draw_stretch(draw: ImageDraw.ImageDraw, stretch: list[tuple[float, float]], n: int) -> None:
    if len(stretch) > 1:
        draw.line(stretch, fill=COLOURS[n % len(COLOURS)], width=2, joint="curve")


def _draw_bar(
    draw: ImageDraw.ImageDraw, axis: Axis, name: str, points: Sequence[Point], top: int, colour: str
) -> None:
    untils = [point.at for point in points[1:]] + [axis.end]
    bottom = top + BAR_HEIGHT
    draw.rectangle((LEFT, top + 16, WIDTH - RIGHT, bottom), fill=GRID)
    for point, until in zip(points, untils, strict=True):
        if point.state in OFF:
            continue
        fill = MISSING if point.state in NO_STATE else colour
        draw.rectangle(
            (axis.x(point.at), top + 16, max(axis.x(until), axis.x(point.at) + 1), bottom), fill=fill
        )
    draw.text((LEFT, top), f"{name}: {points[-1].state}", fill=INK, font=_font(13))


def _draw_names(draw: ImageDraw.ImageDraw, names: Sequence[str], units: Mapping[str, str]) -> None:
    x = float(LEFT)
    for n, name in enumerate(names):
        unit = units.get(name)
        text = f"{name} ({unit})" if unit else name
        draw.rectangle((x, 22, x + 14, 34), fill=COLOURS[n % len(COLOURS)])
        draw.text((x + 20, 28), text, fill=INK, font=_font(14), anchor="lm")
        x += 44 + draw.textlength(text, font=_font(14))


def _scale(low: float, high: float) -> tuple[float, float, float]:
    """Return round numbers below and above, and a round step between them."""
    span = high - low
    if span < max(abs(high), abs(low), 1.0) * SMALLEST_SPAN:
        span = max(abs(high), 1.0)
    rough = span / 5
    size = 10.0 ** floor(log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    bottom, top = floor(low / step) * step, -floor(-high / step) * step
    if bottom == top:
        bottom, top = bottom - step, top + step
    return round(bottom, 10), round(top, 10), step
