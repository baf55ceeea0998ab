"""Constants for kinds."""

from __future__ import annotations

from tidegate.model.k8s.objects import Kind

CONFIG_MAP = Kind("", "v1", "ConfigMap")
EVENT = Kind("", "v1", "Event")
NAMESPACE = Kind("", "v1", "Namespace")
NODE = Kind("", "v1", "Node")
VOLUME = Kind("", "v1", "PersistentVolume")
CLAIM = Kind("", "v1", "PersistentVolumeClaim")
POD = Kind("", "v1", "Pod")
SECRET = Kind("", "v1", "Secret")
SERVICE = Kind("", "v1", "Service")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount")
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
API_SERVICE = Kind("apiregistration.k8s.io", "v1", "APIService")
DAEMON_SET = Kind("apps", "v1", "DaemonSet")
DEPLOYMENT = Kind("apps", "v1", "Deployment")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
APPLICATION = Kind("argoproj.io", "v1alpha1", "Application")
CRON_JOB = Kind("batch", "v1", "CronJob")
JOB = Kind("batch", "v1", "Job")
LEASE = Kind("coordination.k8s.io", "v1", "Lease")
ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass")
