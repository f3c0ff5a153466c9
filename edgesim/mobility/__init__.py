"""Devices that move: paths of straight legs, drawn by models of motion or recorded, and their chords of a grid."""
