"""Documents that others wrote: YAML and JSON from files, standard input and API servers.

One policy holds for all of them. Keys occur once. Aliases stand for a bounded number of values.
Times are text. Values that are nested too deeply are left out of objects and refused elsewhere.
Files, lines and compressed data are read within bounds of memory. An error says where it is: file,
document, item, object, field. Nothing here knows what the documents are about.
"""
