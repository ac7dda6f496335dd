internal import CProtobufC
internal import SwiftProtobuf

/// The memory for descriptors, tables and default values that are made at run time.
///
/// Invariant: everything allocated here is valid as long as this object, which a ``SchemaGraph`` or a ``MessageTables``
/// keeps. All stored types are trivial, as nothing is deinitialised. One thread at a time writes to it.
final class DescriptorMemory: @unchecked Sendable {
  // Safe to share: a pool writes before others see the memory, tables write under their lock.
  let arena = Arena(capacity: 4 * 1024)

  deinit {
    self.arena.destroy()
  }

  func array<T>(of values: [T]) -> UnsafeMutablePointer<T>? {
    guard !values.isEmpty else { return nil }
    let memory = self.arena.take(values.count * MemoryLayout<T>.stride).bindMemory(
      to: T.self,
      capacity: values.count
    )
    for (index, value) in values.enumerated() { (memory + index).initialize(to: value) }
    return memory
  }

  func one<T>(_ value: T) -> UnsafeMutablePointer<T> {
    let memory = self.place(for: T.self)
    memory.initialize(to: value)
    return memory
  }

  /// Uninitialised memory.
  func place<T>(for type: T.Type) -> UnsafeMutablePointer<T> {
    self.arena.take(MemoryLayout<T>.stride).bindMemory(to: T.self, capacity: 1)
  }

  /// A C string. Names in a file contain no NUL: the pool refuses such names.
  func string(_ text: String) -> UnsafePointer<CChar> {
    Array(text.utf8).withUnsafeBytes {
      UnsafePointer(self.arena.newString($0).assumingMemoryBound(to: CChar.self))
    }
  }
}

/// The layout of one message type: the layout that a C compiler would give a protoc-c struct.
struct StructLayout {
  private(set) var size = MemoryLayout<ProtobufCMessage>.stride

  /// The offset of a new member.
  mutating func add(_ size: Int, alignment: Int) -> Int {
    self.size = (self.size + alignment - 1) / alignment * alignment
    defer { self.size += size }
    return self.size
  }

  mutating func add(_ kind: FieldKind) -> Int {
    self.add(kind.size, alignment: min(8, kind.size))
  }
}
