{
  apiVersion: 'argoproj.io/v1alpha1',
  kind: 'Application',
  metadata: { name: 'made-by-jsonnet', namespace: 'argocd' },
  spec: {
    project: 'default',
    source: {
      repoURL: 'https://git.example.com/shop/platform.git',
      path: 'plainly',
      helm: { valueFiles: [] },
    },
    destination: { server: 'https://kubernetes.default.svc', namespace: 'boards' },
  },
}
