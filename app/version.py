"""The one place that names the version; the package, the status page and the metrics read it here."""

VERSION = "0.1.0"
