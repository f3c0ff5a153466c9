"""The report of a run or a study: one page for a browser that needs nothing but itself."""
