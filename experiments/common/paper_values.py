"""The numbers of the paper's two tables: mean final reference gaps in percent.

By method, under its label there, then by the key of a column (budgets.py). Only what the paper
prints: it gives no intervals, no failures and no number of evaluation seeds.
"""

from collections.abc import Mapping

MAIN_LABEL, ABLATIONS_LABEL = "Table 1", "Table 2"

_TSP = (
    "uniform-50", "uniform-100", "uniform-200", "uniform-500",
    "tsplib-50-100", "tsplib-100-200", "tsplib-200-",
)  # fmt: skip
_CVRP = (
    "uniform-50", "uniform-100", "uniform-150", "uniform-200",
    "cvrplib-A", "cvrplib-B", "cvrplib-P", "cvrplib-X",
)  # fmt: skip

Values = Mapping[str, Mapping[str, float]]


def _rows(keys: tuple[str, ...], rows: Mapping[str, tuple[float, ...]]) -> Values:
    return {label: dict(zip(keys, values, strict=True)) for label, values in rows.items()}


MAIN: Mapping[str, Values] = {
    "tsp": _rows(_TSP, {
        "NN": (21.295, 23.807, 24.884, 25.999, 26.039, 23.143, 25.710),
        "FI": (6.261, 7.711, 8.909, 10.535, 7.336, 7.490, 11.662),
        "2-opt": (3.796, 4.197, 5.078, 5.179, 4.120, 3.707, 5.600),
        "3-opt": (2.232, 2.905, 3.900, 4.578, 2.859, 3.041, 4.764),
        "ALNS": (1.720, 2.370, 3.106, 4.103, 1.865, 2.414, 4.106),
        "EoH": (1.222, 4.582, 8.843, 15.708, 2.305, 3.859, 11.627),
        "FunSearch": (1.201, 2.372, 5.717, 18.016, 1.670, 2.045, 6.445),
        "ReEvo": (1.252, 3.707, 6.642, 11.577, 2.210, 3.869, 11.166),
        "G-LNS": (0.483, 1.385, 2.589, 6.305, 0.597, 1.196, 4.145),
        "SPO": (0.212, 0.642, 1.274, 3.139, 0.408, 0.574, 4.040),
    }),
    "cvrp": _rows(_CVRP, {
        "CW": (5.929, 6.418, 6.271, 6.056, 5.089, 4.416, 8.102, 6.013),
        "OR-Tools": (6.036, 7.245, 9.811, 10.902, 4.626, 4.183, 4.401, 7.755),
        "LS": (5.450, 5.590, 5.752, 5.218, 5.121, 5.793, 7.706, 5.529),
        "ALNS": (5.892, 6.000, 6.956, 7.165, 3.979, 3.486, 3.910, 9.680),
        "EoH": (3.842, 7.497, 12.252, 15.788, 4.451, 3.811, 3.607, 16.199),
        "FunSearch": (3.855, 6.092, 13.142, 16.251, 3.992, 4.444, 2.853, 16.279),
        "ReEvo": (5.737, 8.531, 10.616, 14.870, 5.088, 5.388, 3.587, 15.747),
        "G-LNS": (7.704, 8.206, 7.357, 7.535, 3.634, 2.542, 4.030, 5.266),
        "SPO": (3.190, 3.221, 3.273, 4.093, 2.445, 1.918, 2.351, 5.008),
    }),
}  # fmt: skip

ABLATIONS: Values = _rows(_TSP, {
    "SPO": (0.212, 0.642, 1.274, 3.139, 0.408, 0.574, 4.040),
    "w/o Stackelberg Credit": (1.398, 1.908, 3.089, 5.995, 1.309, 2.054, 6.647),
    "w/o State Conditioning": (0.273, 0.816, 2.686, 6.484, 0.592, 0.962, 6.850),
})  # fmt: skip
