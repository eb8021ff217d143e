# SPDX-License-Identifier: Apache-2.0
"""Figures: medians of several rounds, with the ratio to a yardstick that ran in the same rounds."""

import operator
import statistics

LIMITS = {">=": operator.ge, "<=": operator.le}


class Series:
    """One figure in each round."""

    def __init__(self, values):
        self.values = list(values)

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread(self):
        """Half of the interquartile range, in percent of the median: the expected difference of another run."""
        if len(self.values) < 3 or not self.median:
            return 0
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return 50 * (high - low) / abs(self.median)

    def over(self, other):
        """Ratios round by round, because a slow round slows down both."""
        return Series(mine / theirs for mine, theirs in zip(self.values, other.values) if theirs)


def number(value):
    magnitude = abs(value)
    if magnitude >= 10_000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.{1 if magnitude >= 100 else 2 if magnitude >= 10 else 3}f}"


class Figures:
    """Prints each section as a table, and at the end lines for programs."""

    def __init__(self):
        self.lines = []
        self.n_targets = self.n_met = 0
        self.missed = []

    def section(self, title, yardsticks=()):
        print(f"\n{title}\n  {'':34}{'statestored':>14}{'':6}", end="")
        for yardstick in yardsticks:
            print(f"{yardstick:>14}{'ratio':>8}{'':6}", end="")
        print(f"  {'target':>10}", flush=True)

    def line(self, name, value, unit):
        self.lines.append(f"{name} {value:.6g} {unit}")

    def _judge(self, name, value, target):
        if not target:
            return ""
        sign, limit = target
        met = LIMITS[sign](value, limit)
        self.n_targets += 1
        self.n_met += met
        if not met:
            self.missed.append(f"{name}: {number(value)}, not {sign} {limit:g}")
        return f"{sign} {limit:g}  {'met' if met else 'MISSED'}"

    def row(self, label, name, unit, ours, yardsticks=(), target=None, own_target=None):
        """yardsticks: (name, Series). The target is for the ratio to the first, or else for the figure itself. own_target is
        for the figure itself."""
        self.line(name, ours.median, unit)
        self.line(f"{name}_spread", ours.spread, "%")
        print(f"  {label + ', ' + unit:34}{number(ours.median):>14}{f'±{ours.spread:.0f}%':>6}", end="")

        judged = ours.median
        for i, (yardstick, series) in enumerate(yardsticks):
            ratio = ours.over(series)
            self.line(f"{name}_{yardstick}", series.median, unit)
            self.line(f"{name}_ratio_{yardstick}", ratio.median, "1")
            print(f"{number(series.median):>14}{ratio.median:>8.3f}{f'±{ratio.spread:.0f}%':>6}", end="")
            if i == 0 and target:
                judged = ratio.median
        print(f"  {self._judge(name, judged, target or own_target)}", flush=True)

    def finish(self):
        print()
        for line in self.lines:
            print(line)
        print(f"targets_met {self.n_met} of_{self.n_targets}")
        for missed in self.missed:
            print(f"# missed: {missed}")
