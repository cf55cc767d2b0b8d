"""Border solvers of other authors: Gallagher 2012, Yu 2015, Huroyan 2020."""
