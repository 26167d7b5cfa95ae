"""Studies: questions about orders of requests, each answered by one command that makes a page in `docs/studies`.

A study measures, keeps its figures as JSON beside the page, and writes the page from them. So every number of a page
can be had again by the command that stands in it.
"""
