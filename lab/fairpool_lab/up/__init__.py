"""`fairpool up`: pools from the same YAML as on a cluster, on one machine and without one.

What a cluster would do is done by its own means: the resources are read as the API server reads them, judged by the
operator's pure compile, and served by the real gateway. Only where endpoints are is said otherwise: on the command
line, or they are simulated. From below: `resources`, `secrets` and `endpoints` know the files and the command line,
`local` decides, `state`, `programs` and `pool` carry it out, `summary` says it, `session` holds all together.
"""
