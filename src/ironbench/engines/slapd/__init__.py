"""OpenLDAP's directory server, slapd."""
