"""Ways to write quantised vectors: whole numbers from -s to s, and a scale for each bucket of them."""
