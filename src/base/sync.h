// Mutexes that clang's thread-safety analysis understands (./dev check builds with it).
//
// Three kinds: Mutex for things there are few of; SharedMutex for tables that are mostly read; SmallMutex, in
// four bytes, for things there are a million of.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define TS_ATTRIBUTE(x) __attribute__((x))
#else
#define TS_ATTRIBUTE(x)
#endif

#define TS_CAPABILITY(name) TS_ATTRIBUTE(capability(name))
#define TS_SCOPED_CAPABILITY TS_ATTRIBUTE(scoped_lockable)
#define TS_GUARDED_BY(mutex) TS_ATTRIBUTE(guarded_by(mutex))
#define TS_PT_GUARDED_BY(mutex) TS_ATTRIBUTE(pt_guarded_by(mutex))
#define TS_REQUIRES(...) TS_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define TS_REQUIRES_SHARED(...) TS_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define TS_ACQUIRE(...) TS_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TS_ACQUIRE_SHARED(...) TS_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define TS_RELEASE(...) TS_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TS_RELEASE_SHARED(...) TS_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define TS_RELEASE_GENERIC(...) TS_ATTRIBUTE(release_generic_capability(__VA_ARGS__))
#define TS_EXCLUDES(...) TS_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define TS_NO_ANALYSIS TS_ATTRIBUTE(no_thread_safety_analysis)

namespace turnstile {

class TS_CAPABILITY("mutex") Mutex {
 public:
  void lock() TS_ACQUIRE() { mutex_.lock(); }
  void unlock() TS_RELEASE() { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }  // for condition variables

 private:
  std::mutex mutex_;
};

class TS_CAPABILITY("mutex") SharedMutex {
 public:
  void lock() TS_ACQUIRE() { mutex_.lock(); }
  void unlock() TS_RELEASE() { mutex_.unlock(); }
  void lock_shared() TS_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() TS_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// A mutex of four bytes: a million held locks have a million of them (std::mutex takes 40 bytes each). Waits
// in the kernel, by C++20's atomic wait, after a contender has shown itself.
class TS_CAPABILITY("mutex") SmallMutex {
 public:
  void lock() TS_ACQUIRE() {
    uint32_t expected = kFree;
    if (state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire)) return;
    while (state_.exchange(kContended, std::memory_order_acquire) != kFree) state_.wait(kContended);
  }
  void unlock() TS_RELEASE() {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) state_.notify_one();
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kContended = 2;
  std::atomic<uint32_t> state_{kFree};
};

template <class M>
class TS_SCOPED_CAPABILITY Locked {
 public:
  explicit Locked(M& mutex) TS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Locked() TS_RELEASE() { mutex_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  M& mutex_;
};

class TS_SCOPED_CAPABILITY SharedLocked {
 public:
  explicit SharedLocked(SharedMutex& mutex) TS_ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex_.lock_shared(); }
  ~SharedLocked() TS_RELEASE_GENERIC() { mutex_.unlock_shared(); }
  SharedLocked(const SharedLocked&) = delete;
  SharedLocked& operator=(const SharedLocked&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace turnstile
