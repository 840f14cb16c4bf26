"""The charts of a report, as inline SVG without script or outside address."""

from labelsieve.report.crowded_map import MOST as MOST_MAPPED
from labelsieve.report.crowded_map import crowded_map
from labelsieve.report.heat_map import fits, heat_map, largest_pairs
from labelsieve.report.histogram import Group, histogram
from labelsieve.report.line_chart import Band, Curve, line_chart

__all__ = ["MOST_MAPPED", "Band", "Curve", "Group", "crowded_map", "fits", "heat_map", "histogram", "largest_pairs", "line_chart"]
