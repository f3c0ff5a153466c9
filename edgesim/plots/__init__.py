"""Figures from run folders, sized for a two-column paper; `edgesim.plots.gallery.draw` draws them all.

What all figures have in common is written down in plots/README.md, "Conventions".
"""
