"""Durations as people write them ("9m", "1h30m", "90s"), read into seconds and written back."""

import re

from labelsieve.errors import UsageError

UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def parse_duration(text: str) -> float:
    """Seconds in "9m", "1h30m", "45s", "1.5h"; a bare number is seconds."""
    cleaned = text.strip().lower().replace(" ", "")
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms]?)", cleaned)
    if not parts or "".join(a + b for a, b in parts) != cleaned:
        raise UsageError(f'"{text}" is no duration; write it like 90s, 9m, 1h30m')
    seconds = sum(float(number) * UNITS[unit or "s"] for number, unit in parts)
    if seconds <= 0:
        raise UsageError(f'"{text}": a time limit must be longer than nothing')
    return seconds


def say_duration(seconds: float) -> str:
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"
