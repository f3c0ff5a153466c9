"""The radio: path loss, shadowing, fading, Shannon rate, least bandwidth and the sharing of a band."""
