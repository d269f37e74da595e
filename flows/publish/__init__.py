"""Push a release to the Hub, behind the publish gate."""
