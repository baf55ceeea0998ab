local panels = import 'panels.libsonnet';
function(team, rows) [
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'overview-' + std.extVar('cluster'), labels: { team: team } },
    data: { 'overview.json': std.manifestJsonEx(panels.grid(rows), '  ') },
  },
  {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'dashboards' },
    spec: { hard: { cpu: std.extVar('limits').cpu, memory: std.extVar('limits').memory + 'Gi' } },
  },
]
