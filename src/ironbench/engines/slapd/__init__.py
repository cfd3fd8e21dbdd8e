"""OpenLDAP's directory server."""
