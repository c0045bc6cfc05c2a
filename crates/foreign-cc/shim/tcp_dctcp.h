/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The receiving half of DCTCP: Ackclock does not model its echo, so this is never called. */
static inline void dctcp_ece_ack_update(struct sock *sk, enum tcp_ca_event event, u32 *prior_rcv_nxt, u32 *ce_state)
{
	(void)sk, (void)prior_rcv_nxt;
	*ce_state = event == CA_EVENT_ECN_IS_CE;
}
