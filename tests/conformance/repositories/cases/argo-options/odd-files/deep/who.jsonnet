{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'who' }, data: { who: std.extVar('who') } }
