"""A small cluster in one process: an API server, controllers and nodes without containers.

It is the try-out and the test double for Moorage, kubectl and other clients, never production.
It knows objects, not decisions: no scheduling lives here. `server.serve` starts it. Imports point
down only:

    server                        settings, start and stop
    adoption                      takes over the objects of another cluster
    http | controllers | hollow   HTTP | what a cluster does by itself | kubelets without containers
    kinds                         rules, columns and verbs of each kind
    api                           the verbs on objects of any kind, fields, patches
    store                         versions, history, lists and watches, disk
    request_refusals              the Status objects with which requests are refused
"""
