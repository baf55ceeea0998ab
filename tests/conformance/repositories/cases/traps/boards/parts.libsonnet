{ kind: 'Application', apiVersion: 'argoproj.io/v1alpha1' }
