"""Resources from YAML files, each with the line of every field, so that what is wrong can be told where it was written.

From below: `documents` is what comes out, `scalars` says what a text without quotes is, `nodes` makes data of YAML's
nodes, `jsons` knows where JSON is more than YAML, `texts` reads one file's text, and `files` finds the files.
"""

from fairpool_operator.manifests.documents import Document, Manifests, Place, Problem, Steps
from fairpool_operator.manifests.files import STDIN, Contents, contents_of, read, read_contents
from fairpool_operator.manifests.texts import read_text

__all__ = [
    "STDIN",
    "Contents",
    "Document",
    "Manifests",
    "Place",
    "Problem",
    "Steps",
    "contents_of",
    "read",
    "read_contents",
    "read_text",
]
