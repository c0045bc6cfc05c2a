package runtime

import _ "unsafe"

// Returns the time of the first timer of the caller's synctest bubble, in nanoseconds; 0 if it has none. A timer
// that was stopped may still count.
//
//go:linkname ackclockNextTimer main.nextTimer
func ackclockNextTimer() int64 {
	bubble := getg().bubble
	if bubble == nil {
		return 0
	}
	return bubble.timers.wakeTime()
}
