"""What a release is: specification, manifest, versions, drift, audit."""
