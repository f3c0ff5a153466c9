"""Figures from run folders, sized for a two-column paper; `edgesim.plots.gallery.draw` draws them all."""
