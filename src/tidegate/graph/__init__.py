"""Dependency graph: references, providers, declared order, cycles and the critical path.

The package is pure. It maps units, manifests, a plan and kind rows to a `Graph` of the model. The
cost is linear in objects and references.

    graph = build_graph(manifests, plan, inputs)        graph.build

    reachability = StepReachability(graph)              graph.reachability: built once, used often
    inverted = [                                        # dependents before their providers
        edge
        for edge in graph.edges
        if relative_position(graph, reachability, edge.before, edge.after)
        is RelativePosition.AFTER
        and not edge.is_optional
    ]
    unmet = find_unmet_dependencies(graph)              graph.missing
    cycles = find_cycles(graph)                         graph.cycles
    path = find_critical_path(graph, duration_of)       graph.paths
    links = explain_wait(graph, node, other)            graph.paths

An example. The Application `shop` has a Job in wave 1 that reads the Secret `db`, and an
ExternalSecret in wave 2 that creates it:

    nodes   0 unit Application/argocd/shop
            1 object Job shop/migrate           step 0   location: jobs.yaml:1     is_task
            2 object ExternalSecret shop/db     step 1   location: secrets.yaml:1
            3 external CustomResourceDefinition externalsecrets.external-secrets.io
            4 external Namespace shop
            5 external operator external-secrets (it has no ref)
            6 external ClusterSecretStore vault
    steps   0 Application/argocd/shop/sync/1    nodes (1,)
            1 Application/argocd/shop/sync/2    nodes (2,)
    order   Edge(before="…/sync/1", after="…/sync/2", because=wave)
    edges   before 2, after 1, kind=reference, required_object=Secret shop/db, effect=blocked,
                required_state=exists, field="spec.template.spec.containers[0].envFrom[0].secretRef"
            before 4, after 1 and 2, kind=namespace, effect=rejected
            before 3, after 2, kind=definition, effect=rejected
            before 5, after 2, kind=operator, effect=blocked, required_state=ready
            before 6, after 2, kind=reference, effect=blocked, required_state=ready

`relative_position(graph, reachability, 2, 1)` is AFTER: the provider is after its dependent.
`find_cycles` returns one cycle: wave 2 waits for the Job, the Job for the Secret, the Secret for
the ExternalSecret, and the ExternalSecret for wave 2. `find_unmet_dependencies` lists nodes 3 to 6,
each with its dependents and their locations.
"""
