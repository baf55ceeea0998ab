"""Who needs whom: references, producers, declared order, what is missing, circles, critical path.

Pure: units, manifests, a plan and rows in, a `model.graph.Graph` out. The cost is linear in objects
and references.

    graph = build_graph(manifests, plan, ground)        graph.build     (flows: graph.make_graph)

    reach = StepReach(graph)                            graph.reach: made once, asked often
    inverted = [                                        # consumers that come before producers
        edge
        for edge in graph.edges
        if standing(graph, reach, edge.before, edge.after) is NodeStanding.BEHIND
        and not edge.optional
    ]
    lacks = missing(graph)                              graph.missing
    circles = find_circles(graph)                       graph.circles
    path = critical_path(graph)                         graph.paths
    path = why(graph, one, other)                       graph.paths

A worked example. One Application `shop` has a Job in wave 1 that reads the Secret `db`, and an
ExternalSecret in wave 2 that makes it:

    nodes   0 unit Application/argocd/shop
            1 object Job shop/migrate           step 0   where: jobs.yaml:1     is_task
            2 object ExternalSecret shop/db     step 1   where: secrets.yaml:1
            3 outside CustomResourceDefinition externalsecrets.external-secrets.io
            4 outside Namespace shop
            5 outside operator external-secrets (it has no ref)
            6 outside ClusterSecretStore vault
    steps   0 Application/argocd/shop/sync/1    nodes (1,)
            1 Application/argocd/shop/sync/2    nodes (2,)
    order   Edge(before="…/sync/1", after="…/sync/2", because=wave)
    edges   before 2, after 1, tie=reference, through=Secret shop/db, effect=held, until=exists
                field="spec.template.spec.containers[0].envFrom[0].secretRef"
            before 4, after 1 and 2, tie=namespace, effect=refused
            before 3, after 2, tie=definition, effect=refused
            before 5, after 2, tie=operator, effect=held, until=ready
            before 6, after 2, tie=reference, effect=held, until=ready

`standing(graph, reach, 2, 1)` is BEHIND: the producer comes after the consumer. `find_circles`
gives one circle: wave 2 waits for the Job, the Job for the Secret, the Secret for the
ExternalSecret, and that for wave 2. `missing` lists nodes 3 to 6, each with who needs it and where.
"""
