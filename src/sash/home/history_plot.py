"""Draws histories as an image: numbers as lines, other states as bars, on a common time axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from io import BytesIO
from math import ceil, floor, log10

from PIL import Image, ImageDraw, ImageFont

from sash.home.history import extract_numbers, is_numeric, parse_number
from sash.ports.home import NO_STATE, HistoryPoint

WIDTH, LINES_HEIGHT, BAR_HEIGHT = 960, 360, 34
LEFT, RIGHT, TOP, BOTTOM, GAP = 64, 24, 52, 34, 14
SERIES_COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#db2777", "#4d7c0f")
BACKGROUND_COLOUR, TEXT_COLOUR, LABEL_COLOUR, GRID_COLOUR, MISSING_COLOUR = (
    "#ffffff",
    "#111827",
    "#6b7280",
    "#e5e7eb",
    "#f3d9d9",
)
IDLE_STATES = frozenset(
    {"off", "closed", "locked", "not_home", "idle", "standby", "clear", "disarmed", "docked"}
)
TICK_STEPS = (
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=3),
    timedelta(hours=6),
    timedelta(days=1),
)
MAX_TICKS = 10
# A smaller relative span of values is drawn as a constant.
MIN_RELATIVE_SPAN = 1e-6


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Maps times to horizontal positions in pixels."""

    start: datetime
    end: datetime

    def get_x(self, at: datetime) -> float:
        share = (at - self.start) / (self.end - self.start)
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(share, 0.0), 1.0)


def draw_history(
    histories: Mapping[str, Sequence[HistoryPoint]],
    units: Mapping[str, str],
    start: datetime,
    end: datetime,
    zone: tzinfo | None = None,
) -> bytes:
    """Draw histories, given by the name of the entity, and return a PNG file."""
    lines = {name: points for name, points in histories.items() if is_numeric(points)}
    bars = {name: points for name, points in histories.items() if points and name not in lines}
    height = TOP + (LINES_HEIGHT + GAP if lines else 0) + len(bars) * (BAR_HEIGHT + GAP) + BOTTOM
    image = Image.new("RGB", (WIDTH, height), BACKGROUND_COLOUR)
    draw = ImageDraw.Draw(image)
    axis = TimeAxis(start, end)
    _draw_times(draw, axis, zone, height - BOTTOM)
    top = TOP
    if lines:
        _draw_lines(draw, axis, lines, top)
        top += LINES_HEIGHT + GAP
    for n, (name, points) in enumerate(bars.items(), len(lines)):
        _draw_bar(draw, axis, name, points, top, SERIES_COLOURS[n % len(SERIES_COLOURS)])
        top += BAR_HEIGHT + GAP
    _draw_legend(draw, [*lines], units)
    data = BytesIO()
    image.save(data, "PNG", optimize=True)
    return data.getvalue()


def _load_font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _draw_times(draw: ImageDraw.ImageDraw, axis: TimeAxis, zone: tzinfo | None, bottom: int) -> None:
    for at in find_ticks(axis.start, axis.end, zone):
        x = axis.get_x(at)
        draw.line((x, TOP, x, bottom), fill=GRID_COLOUR)
        text = f"{at:%a %d %b}" if (at.hour, at.minute) == (0, 0) else f"{at:%H:%M}"
        draw.text((x, bottom + 6), text, fill=LABEL_COLOUR, font=_load_font(13), anchor="ma")


def find_ticks(start: datetime, end: datetime, zone: tzinfo | None) -> list[datetime]:
    """Return round local times between two times, about `MAX_TICKS` at most."""
    span = end - start
    days = timedelta(days=ceil(span / timedelta(days=1) / MAX_TICKS))
    step = next((step for step in TICK_STEPS if span / step <= MAX_TICKS), days)
    local = start.astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight + step * (floor((local - midnight) / step) + 1)
    return [first + n * step for n in range(ceil((end - first) / step))]


def _draw_lines(
    draw: ImageDraw.ImageDraw,
    axis: TimeAxis,
    lines: Mapping[str, Sequence[HistoryPoint]],
    top: int,
) -> None:
    values = [value for points in lines.values() for value in extract_numbers(points).values]
    low, high, step = _find_scale(min(values), max(values))
    bottom = top + LINES_HEIGHT

    def y(value: float) -> float:
        return bottom - (value - low) / (high - low) * LINES_HEIGHT

    tick = low
    while tick <= high + step / 2:
        draw.line((LEFT, y(tick), WIDTH - RIGHT, y(tick)), fill=GRID_COLOUR)
        draw.text((LEFT - 8, y(tick)), f"{tick:g}", fill=LABEL_COLOUR, font=_load_font(13), anchor="rm")
        tick = round(tick + step, 10)
    for n, points in enumerate(lines.values()):
        segment: list[tuple[float, float]] = []
        for point in points:
            value = parse_number(point.state)
            if value is None:
                segment += [(axis.get_x(point.at), y) for _, y in segment[-1:]]
                _draw_segment(draw, segment, n)
                segment = []
            else:
                segment.append((axis.get_x(point.at), y(value)))
        if segment:
            segment.append((axis.get_x(axis.end), segment[-1][1]))
        _draw_segment(draw, segment, n)


def _draw_segment(draw: ImageDraw.ImageDraw, segment: list[tuple[float, float]], n: int) -> None:
    if len(segment) > 1:
        draw.line(segment, fill=SERIES_COLOURS[n % len(SERIES_COLOURS)], width=2, joint="curve")


def _draw_bar(
    draw: ImageDraw.ImageDraw,
    axis: TimeAxis,
    name: str,
    points: Sequence[HistoryPoint],
    top: int,
    colour: str,
) -> None:
    untils = [point.at for point in points[1:]] + [axis.end]
    bottom = top + BAR_HEIGHT
    draw.rectangle((LEFT, top + 16, WIDTH - RIGHT, bottom), fill=GRID_COLOUR)
    for point, until in zip(points, untils, strict=True):
        if point.state in IDLE_STATES:
            continue
        fill = MISSING_COLOUR if point.state in NO_STATE else colour
        draw.rectangle(
            (axis.get_x(point.at), top + 16, max(axis.get_x(until), axis.get_x(point.at) + 1), bottom),
            fill=fill,
        )
    draw.text((LEFT, top), f"{name}: {points[-1].state}", fill=TEXT_COLOUR, font=_load_font(13))


def _draw_legend(draw: ImageDraw.ImageDraw, names: Sequence[str], units: Mapping[str, str]) -> None:
    x = float(LEFT)
    for n, name in enumerate(names):
        unit = units.get(name)
        text = f"{name} ({unit})" if unit else name
        draw.rectangle((x, 22, x + 14, 34), fill=SERIES_COLOURS[n % len(SERIES_COLOURS)])
        draw.text((x + 20, 28), text, fill=TEXT_COLOUR, font=_load_font(14), anchor="lm")
        x += 44 + draw.textlength(text, font=_load_font(14))


def _find_scale(low: float, high: float) -> tuple[float, float, float]:
    """Return the bottom, the top and the step of an axis with round numbers."""
    span = high - low
    if span < max(abs(high), abs(low), 1.0) * MIN_RELATIVE_SPAN:
        span = max(abs(high), 1.0)
    rough = span / 5
    size = 10.0 ** floor(log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    bottom, top = floor(low / step) * step, -floor(-high / step) * step
    if bottom == top:
        bottom, top = bottom - step, top + step
    return round(bottom, 10), round(top, 10), step
