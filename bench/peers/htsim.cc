// The workloads W1 to W5 (crates/simtest/src/workloads.rs) in csg-htsim: `htsim W1 0.1`, `htsim W5 50`.
//
// The number is the part of the usual duration, of W5 the number of transfers, which follow each
// other in one simulation. The last line printed has, separated by tabs: data segments, segments
// retransmitted (unknown to csg-htsim: 0), bytes delivered, virtual seconds, nanoseconds of processor time
// without making the network.
//
// A packet is what one segment has on the wire: csg-htsim's packets have no headers. Its receivers
// acknowledge every packet, so the return path carries twice the ACKs of the other programs.

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

constexpr int PACKET = 1500;
// What a Linux sender with the usual net.ipv4.tcp_wmem keeps in flight: see the README.
constexpr uint32_t MOST_IN_FLIGHT = 1820u * PACKET;

uint64_t cpu_nanos() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return uint64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

// Loses packets at random.
class Loss : public PacketSink {
  public:
    explicit Loss(double part) : part_(part), name_("loss") {}

    void receivePacket(Packet& packet) override {
        if (drand48() < part_) {
            packet.free();
        } else {
            packet.sendOn();
        }
    }

    const string& nodename() override { return name_; }

  private:
    double part_;
    string name_;
};

struct World {
    EventList& events;
    TcpRtxTimerScanner timers;
    std::vector<TcpSrc*> sources;
    std::vector<TcpSink*> sinks;

    explicit World(EventList& list) : events(list), timers(timeFromMs(10), list) {}

    Queue* queue(linkspeed_bps rate, int packets) {
        return new Queue(rate, mem_b(packets) * PACKET, events, nullptr);
    }

    // The routes end before the sink and the source, which are added; of no size: without end.
    void flow(route_t* out, route_t* back, simtime_picosec start, uint64_t bytes) {
        auto source = new TcpSrc(nullptr, nullptr, events);
        auto sink = new TcpSink();
        source->_maxcwnd = MOST_IN_FLIGHT;
        source->set_ssthresh(0xffffffff);
        if (bytes > 0) source->set_flowsize(bytes);
        timers.registerTcp(*source);
        out->push_back(sink);
        back->push_back(source);
        source->connect(*out, *back, *sink, start);
        sources.push_back(source);
        sinks.push_back(sink);
    }

    void dumbbell(int flows, linkspeed_bps rate) {
        auto there = queue(rate, 5000), home = queue(rate, 5000);
        linkspeed_bps access = speedFromMbps(uint64_t(1000));
        for (int n = 0; n < flows; ++n) {
            auto out = new route_t(), back = new route_t();
            for (auto way : {out, back}) {
                way->push_back(queue(access, 1000));
                way->push_back(way == out ? there : home);
                way->push_back(queue(access, 1000));
                way->push_back(new Pipe(timeFromMs(20), events));
            }
            flow(out, back, timeFromUs(uint32_t(10 * n)), 0);
        }
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: htsim W1|W2|W3|W4|W5 PART\n");
        return 2;
    }
    const char* name = argv[1];
    double part = atof(argv[2]);
    Packet::set_packet_size(PACKET);
    srand48(1);
    EventList events;
    World world(events);
    double seconds = 0;
    auto one = [&](linkspeed_bps rate, int room, simtime_picosec delay, double loss, int transfers) {
        auto line = world.queue(rate, room);
        auto there = new Pipe(delay, events), home = new Pipe(delay, events);
        for (int n = 0; n < (transfers > 0 ? transfers : 1); ++n) {
            auto out = new route_t(), back = new route_t();
            out->push_back(line);
            if (loss > 0) out->push_back(new Loss(loss));
            out->push_back(there);
            back->push_back(home);
            world.flow(out, back, timeFromSec(5.0 * n), transfers > 0 ? 1000000 : 0);
        }
    };
    if (!strcmp(name, "W1")) {
        seconds = 60 * part;
        one(speedFromMbps(uint64_t(1000)), 3333, timeFromMs(20), 0, 0);
    } else if (!strcmp(name, "W2")) {
        seconds = 10 * part;
        one(speedFromMbps(uint64_t(1000)), 100, timeFromUs(75.0), 0.01, 0);
    } else if (!strcmp(name, "W3")) {
        seconds = 10 * part;
        world.dumbbell(100, speedFromMbps(uint64_t(1000)));
    } else if (!strcmp(name, "W4")) {
        seconds = 2 * part;
        world.dumbbell(10000, speedFromMbps(uint64_t(10000)));
    } else if (!strcmp(name, "W5")) {
        seconds = 5 * part;
        one(speedFromMbps(uint64_t(100)), 166, timeFromMs(10), 0, int(part));
    } else {
        fprintf(stderr, "%s is not W1, W2, W3, W4 or W5\n", name);
        return 2;
    }
    events.setEndtime(timeFromSec(seconds));
    auto began = cpu_nanos();
    while (events.doNextEvent()) {
    }
    auto nanos = cpu_nanos() - began;
    uint64_t segments = 0, delivered = 0;
    for (auto source : world.sources) segments += source->_packets_sent / PACKET;
    for (auto sink : world.sinks) delivered += sink->_cumulative_ack / PACKET * 1448;
    printf("%lu\t0\t%lu\t%f\t%lu\n", segments, delivered, seconds, nanos);
    return 0;
}
