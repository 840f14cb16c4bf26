"""The charts of a report: numbers go in, inline SVG without script or outside address comes out."""

from labelsieve.report.heat_map import heat_map
from labelsieve.report.histogram import Group, histogram
from labelsieve.report.line_chart import Band, Curve, line_chart

__all__ = ["Band", "Curve", "Group", "heat_map", "histogram", "line_chart"]
