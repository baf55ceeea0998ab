echo apiVersion: v1
