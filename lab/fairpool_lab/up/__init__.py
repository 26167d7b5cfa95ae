"""`fairpool up`: pools from the same YAML as on a cluster, on one machine and without one.

What a cluster would do is done by its own means: the resources are read as the API server reads them, judged by the
operator's pure compile, and served by the real gateway. Only where endpoints are is said otherwise: on the command
line, or they are simulated. From below: `admission`, `resources` and `endpoints` know the files and the
command line, `local` decides, `state`, `programs`, `started`, `pool` and `pools` carry it out, `following` notices
edits, `summary` says what there is to say, and `session` holds all together.
"""
