internal import CProtobufC

/// Owns the memory of one message. The handles on the message and on its nested messages share it.
///
/// Safe to share between threads: it is changed only through a handle that is its only reference
/// (``MessageHandle/makeUnique()``), and otherwise only read.
@usableFromInline
final class MessageStorage: @unchecked Sendable {
  let arena: Arena
  /// The descriptors that were made at run time, which have to live as long as the message.
  let graph: SchemaGraph?
  /// Whether somebody else owns the memory, so that it must not be changed.
  let isBorrowed: Bool
  /// Whether the content came from a checked source and no other code has changed it since. Checked content needs no
  /// check before encoding.
  var isChecked: Bool

  init(
    arena: Arena,
    graph: SchemaGraph?,
    isBorrowed: Bool = false,
    isChecked: Bool
  ) {
    self.arena = arena
    self.graph = graph
    self.isBorrowed = isBorrowed
    self.isChecked = isChecked
  }

  deinit {
    self.arena.destroy()
  }
}

/// A message in a storage: the common part of the typed and the dynamic handles.
///
/// Invariant: `pointer` points to an initialised message in the memory of `storage`. If `storage` is borrowed, the
/// message is in memory that its owner promised to keep. The message is written to only after ``makeUnique()``.
@usableFromInline
struct MessageHandle: Sendable {
  /// Room for a few small fields.
  private static let smallCapacity = 256

  @usableFromInline private(set) var storage: MessageStorage
  /// Safe to share for the reason given at `storage`.
  @usableFromInline private(set) nonisolated(unsafe) var pointer: UnsafeMutableRawPointer

  @inlinable
  init(storage: MessageStorage, pointer: UnsafeMutableRawPointer) {
    self.storage = storage
    self.pointer = pointer
  }

  /// An empty message.
  init(_ descriptor: MessageDescriptorPointer, graph: SchemaGraph?) {
    let size = Arena.rounded(descriptor.pointee.sizeof_message)
    let arena = Arena(capacity: size + Self.smallCapacity)
    self.storage = MessageStorage(arena: arena, graph: graph, isChecked: true)
    self.pointer = arena.newMessage(descriptor)
  }

  /// Borrows a message, which has to stay and must not change while this handle or a copy of it exists.
  init(borrowing message: UnsafeRawPointer, graph: SchemaGraph?) {
    let arena = Arena(capacity: 0)
    self.storage = MessageStorage(arena: arena, graph: graph, isBorrowed: true, isChecked: false)
    // Never written through: a write sees that the storage is borrowed, and copies.
    self.pointer = UnsafeMutableRawPointer(mutating: message)
  }

  /// A copy of a checked `message` with everything it contains.
  init(copying message: UnsafeRawPointer, graph: SchemaGraph?, isChecked: Bool) {
    let arena = Arena(capacity: 1024)
    self.storage = MessageStorage(arena: arena, graph: graph, isChecked: isChecked)
    self.pointer = arena.copy(message)
  }

  var descriptor: MessageDescriptorPointer {
    // Every message begins with its descriptor.
    self.pointer.load(as: MessageDescriptorPointer.self)
  }

  /// The message, valid while `storage` is kept.
  var message: MessagePointer { MessagePointer(self.pointer) }

  var base: UnsafePointer<ProtobufCMessage> { UnsafePointer(self.message.base) }

  /// Makes this handle the only one on its memory, so that the memory may be changed.
  mutating func makeUnique() {
    if !self.storage.isBorrowed, isKnownUniquelyReferenced(&self.storage) { return }
    self = MessageHandle(copying: self.pointer, graph: self.storage.graph, isChecked: self.storage.isChecked)
  }

  /// The handle of a message inside this one.
  @inlinable
  func child(_ pointer: UnsafeMutableRawPointer) -> MessageHandle {
    MessageHandle(storage: self.storage, pointer: pointer)
  }

  /// The handle of a message inside this one.
  func child(_ message: MessagePointer) -> MessageHandle { self.child(message.address) }
}
