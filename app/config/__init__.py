"""The configuration: what an operator may say, checked before anything runs."""

from app.config.load import load_settings, settings_path
from app.config.models import ClusterConfig, FlowConfig, PolicyConfig, SecurityConfig, Settings
from app.config.runtime import RuntimeConfig

__all__ = [
    "ClusterConfig",
    "FlowConfig",
    "PolicyConfig",
    "RuntimeConfig",
    "SecurityConfig",
    "Settings",
    "load_settings",
    "settings_path",
]
