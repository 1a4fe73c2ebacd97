"""A model bound to its data, as solvers see it, and the weights that they move."""
