"""Analysis of variance of a measure over one factor or two."""

import pandas as pd

SHARED_SEEDS = (
    "Analysis of variance takes runs for independent, and these share their seeds: read it beside the paired tests."
)


def analyse(values: pd.DataFrame, factors: list[str]) -> pd.DataFrame:
    """One- or two-way analysis of variance, by type II sums of squares.

    ``values`` has a row per run: columns ``value`` and the one or two ``factors``, taken as categories. One row per
    factor, for their interaction (``A x B``) and for what is left (``residual``): ``source``, ``sum_sq``, ``df``,
    ``f``, ``p``, and ``share`` of all squares. F and p are NaN where nothing is left over to compare with.
    """
    # Imported here: the import takes seconds.
    from statsmodels.regression.linear_model import OLS
    from statsmodels.stats.anova import anova_lm

    coded = pd.DataFrame({"value": values["value"].astype(float)})
    for i, name in enumerate(factors):
        coded[f"f{i}"] = pd.factorize(values[name])[0]
    fit = OLS.from_formula("value ~ " + " * ".join(f"C(f{i})" for i in range(len(factors))), coded).fit()
    table = anova_lm(fit, typ=2)
    sources = [*factors, *([" x ".join(factors)] if len(factors) > 1 else []), "residual"]
    table = table.set_axis(["sum_sq", "df", "f", "p"], axis=1).reset_index(drop=True)
    return table.assign(share=table["sum_sq"] / table["sum_sq"].sum()).assign(source=sources)[
        ["source", "sum_sq", "df", "f", "p", "share"]
    ]
