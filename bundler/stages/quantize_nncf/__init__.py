"""Post-training quantisation with OpenVINO's NNCF."""
